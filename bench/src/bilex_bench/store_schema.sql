-- The tables of a results file.
-- Shared parts (see store.py) are stored in `parts` once, named by their SHA-256. `labels` has a row for each
-- name that a grid gave to an experiment, since two tables of the paper may show one experiment.
CREATE TABLE results (
    key TEXT PRIMARY KEY,
    setup TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
    error TEXT,
    evaluation TEXT,
    seconds TEXT NOT NULL,
    gigabytes REAL,
    gpu_gigabytes REAL,
    device TEXT NOT NULL,
    environment TEXT NOT NULL,
    report TEXT NOT NULL,
    started TEXT NOT NULL,
    attempts INTEGER NOT NULL
);
CREATE TABLE labels (
    key TEXT NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (key, label)
);
CREATE TABLE parts (
    sha256 TEXT PRIMARY KEY,
    content BLOB NOT NULL
);
CREATE TABLE predictions (
    key TEXT NOT NULL REFERENCES results (key),
    direction TEXT NOT NULL,
    words TEXT NOT NULL REFERENCES parts (sha256),
    own BLOB NOT NULL,
    PRIMARY KEY (key, direction)
);
CREATE TABLE samples (
    key TEXT NOT NULL REFERENCES results (key),
    name TEXT NOT NULL,
    words TEXT NOT NULL REFERENCES parts (sha256),
    source TEXT NOT NULL REFERENCES parts (sha256),
    target TEXT NOT NULL REFERENCES parts (sha256),
    PRIMARY KEY (key, name)
);

CREATE VIEW scores AS
WITH directions (direction) AS (VALUES ('forward'), ('backward')),
     retrievals (retrieval) AS (VALUES ('nn'), ('csls')),
     named AS (
         SELECT results.*, coalesce(nullif(labels.label, ''), json_extract(setup, '$.method')) AS label
         FROM results LEFT JOIN labels ON labels.key = results.key
     )
SELECT json_extract(setup, '$.dataset') AS dataset,
       json_extract(setup, '$.pair') AS pair,
       json_extract(setup, '$.seeds') AS seeds,
       label,
       json_extract(setup, '$.method') AS method,
       json_extract(setup, '$.lm') AS lm,
       json_extract(setup, '$.tune') AS tune,
       json_extract(setup, '$.mixing') AS mixing,
       direction,
       retrieval,
       json_extract(evaluation, '$.' || direction || '.' || retrieval || '."p@1"') AS p1,
       json_extract(evaluation, '$.' || direction || '.' || retrieval || '."p@5"') AS p5,
       json_extract(evaluation, '$.' || direction || '.' || retrieval || '."p@10"') AS p10,
       json_extract(evaluation, '$.' || direction || '.' || retrieval || '.mrr') AS mrr,
       json_extract(evaluation, '$.' || direction || '.leak_free.' || retrieval || '."p@1"') AS p1_leak_free,
       json_extract(evaluation, '$.' || direction || '.covered') AS covered,
       json_extract(evaluation, '$.' || direction || '.total') AS total,
       (SELECT sum(value) FROM json_each(seconds)) AS seconds,
       gigabytes,
       gpu_gigabytes,
       device,
       json_extract(setup, '$.limit') AS word_limit,
       json_extract(setup, '$.seed') AS seed,
       json_extract(setup, '$.settings') AS settings,
       started,
       key
FROM named CROSS JOIN directions CROSS JOIN retrievals
WHERE status = 'done';
