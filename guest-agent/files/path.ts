/** Paths as bytes: names in a guest need not be UTF-8. A byte path is a Buffer, and a name in it may be kept as latin1 text. */
import { MAX_FILE_PATH_BYTES } from "../../shared/agent-protocol/files.ts";
import { InvalidRequest } from "../exec/request.ts";

const TO_TEXT = new TextDecoder("utf-8", { fatal: true });
const SLASH = 0x2f;

/** An absolute path of a request, without empty and `.` components. Throws InvalidRequest. */
export function parsePath(value: unknown, field = "path"): Buffer {
  if (typeof value !== "string" || !value.startsWith("/") || value.includes("\0")) {
    throw new InvalidRequest(`${field} must be an absolute path without NUL`);
  }
  const names = value.split("/").filter((name) => name !== "" && name !== ".");
  const path = Buffer.from(`/${names.join("/")}`);
  if (path.byteLength >= MAX_FILE_PATH_BYTES) throw new InvalidRequest(`${field} is too long`);
  return path;
}

/** The path as text, and its bytes if they are not UTF-8. */
export function shownPath(path: Uint8Array): { path: string; path_b64?: string } {
  try {
    return { path: TO_TEXT.decode(path) };
  } catch {
    return { path: Buffer.from(path).toString(), path_b64: Buffer.from(path).toString("base64") };
  }
}

/** `name` is latin1 text. */
export function joined(directory: Buffer, name: string): Buffer {
  const slash = directory.byteLength === 1 ? "" : "/";
  return Buffer.concat([directory, Buffer.from(`${slash}${name}`, "latin1")]);
}

export function parentOf(path: Buffer): Buffer {
  const slash = path.lastIndexOf(SLASH);
  return slash <= 0 ? Buffer.from("/") : path.subarray(0, slash);
}
