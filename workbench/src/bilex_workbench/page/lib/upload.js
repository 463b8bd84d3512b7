// Sends a file in pieces, so that files of any size go through and a lost connection loses one piece.

import { api } from "./api.js";

const TRIES = 5;
const PAUSE_MS = 500;

/** Sends one piece, again after a lost connection; asks the server how far it is before each new try. */
async function sendPiece(file, upload, piece, signal) {
  let state = upload;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await api.send("PUT", `setup/uploads/${encodeURIComponent(state.id)}`, file.slice(state.received, state.received + piece), {
        query: { offset: state.received }, headers: { "Content-Type": "application/octet-stream" }, signal,
      });
    } catch (error) {
      if (error.name === "AbortError" || attempt === TRIES || (error.status !== 0 && error.status !== 409)) throw error;
      await new Promise((resolve) => { setTimeout(resolve, PAUSE_MS * attempt); });
      state = await api.get(`setup/uploads/${encodeURIComponent(state.id)}`);
    }
  }
}

/**
 * Uploads a file.
 *
 * @param {File} file
 * @param {object} given  piece: bytes a piece; onprogress: (received, size) => void; signal: to stop
 * @returns the finished upload of the server
 */
export async function uploadFile(file, { piece, onprogress, signal }) {
  let upload = await api.post("setup/uploads", { name: file.name, size: file.size });
  try {
    while (!upload.complete) {
      upload = await sendPiece(file, upload, piece, signal);
      onprogress(upload.received, upload.size);
    }
  } catch (error) {
    if (error.name === "AbortError") await api.remove(`setup/uploads/${encodeURIComponent(upload.id)}`);
    throw error;
  }
  return upload;
}
