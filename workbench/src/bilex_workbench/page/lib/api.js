// The REST interface of the server, the same that scripts use (see /docs). The page's cookie carries the token.

import { direction } from "./direction.js";

/** An answer that is not a success; its message is the server's own sentence. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

async function sentence(response) {
  try {
    const { detail } = await response.json();
    if (typeof detail === "string") return detail;
  } catch {
    // Not JSON: the status says what can be said.
  }
  return `The server answered ${response.status} ${response.statusText}.`;
}

/** Whether a path is about entries, and so about one direction of the dictionary. */
const directed = (path) => direction() === "backward" && /^(entries|entry|examples|review|audit|publish)\b/.test(path);

/** The address of a request; parameters without a value are left out. */
function addressOf(path, query = {}) {
  const kept = Object.entries({ ...query, ...(directed(path) ? { direction: "backward" } : {}) }).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(kept.map(([key, value]) => [key, String(value)]));
  return `/api/${path}${kept.length ? `${path.includes("?") ? "&" : "?"}${search}` : ""}`;
}

async function request(method, path, { query, body, raw, headers, signal } = {}) {
  let response;
  try {
    response = await fetch(addressOf(path, query), {
      method, signal, credentials: "same-origin",
      headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
      body: body === undefined ? raw : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer; start 'bilex serve' again and reload this page.", 0);
  }
  if (response.status === 401) throw new ApiError("This page is no longer logged in; open the link that 'bilex serve' printed.", 401);
  if (!response.ok) throw new ApiError(await sentence(response), response.status);
  return response.status === 204 ? null : response.json();
}

export const api = {
  get: (path, query, signal) => request("GET", path, { query, signal }),
  post: (path, body = {}, query = undefined) => request("POST", path, { body, query }),
  put: (path, body = {}) => request("PUT", path, { body }),
  remove: (path, query) => request("DELETE", path, { query }),
  send: (method, path, raw, { headers, query, signal } = {}) => request(method, path, { raw, headers, query, signal }),
  /** The address of something to download. */
  address: addressOf,
};
