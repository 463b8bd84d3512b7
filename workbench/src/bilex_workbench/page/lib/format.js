// Numbers, shares and times as text.

const whole = new Intl.NumberFormat("en");

/** 12345 as "12,345". */
export const count = (value) => whole.format(value);

/** A count and its noun: "1 entry", "2 entries". */
export const counted = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** 0.873 as "87 %"; "–" for an unknown share. */
export function percent(share, digits = 0) {
  return share === null || share === undefined || Number.isNaN(share) ? "–" : `${(share * 100).toFixed(digits)} %`;
}

/** A range such as "1001-5000" or "0.2-0.5" as "1,001–5,000" or "0.2–0.5". */
export const range = (name) => name.replaceAll(/\d+(\.\d+)?/g, (number) => (number.includes(".") ? number : count(Number(number)))).replace("-", "–");

/** A score with three digits. */
export const score = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));

/** A count of bytes as "12.3 MB". */
export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let index = 0;
  let left = value;
  while (left >= 1000 && index < units.length - 1) {
    left /= 1000;
    index += 1;
  }
  return `${index === 0 ? left : left.toFixed(1)} ${units[index]}`;
}

/** Seconds as "8 s", "3 min 20 s" or "1 h 5 min". */
export function duration(seconds) {
  const total = Math.max(0, Math.round(seconds));
  if (total < 60) return `${total} s`;
  if (total < 3600) return `${Math.floor(total / 60)} min ${total % 60} s`;
  return `${Math.floor(total / 3600)} h ${Math.floor((total % 3600) / 60)} min`;
}

/** A time of the server (ISO 8601) in the reader's own zone. */
export function time(value) {
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
