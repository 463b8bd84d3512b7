"""The workbench: review, correct, retrain and publish a dictionary in the browser (`bilex serve`).

`server` is the application and `access` its access policy. `workbench` holds the open model (`engine`), its
review files (`database`) and the running job (`worker`); `precompute` fills the table. The other
modules have the routes of one subject each, with their types.
"""

__version__ = "0.2.0"
