/** Absolute paths of a sandbox in the callers' notation, without `..`: after a link it would differ in meaning from the text. */
import { MAX_PATH_BYTES } from "../../../../shared/api/file-entries.ts";
import type { RuleBreak } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";

const MAX_NAME_BYTES = 255;

/** The rule for a field that holds a path; an absent field is valid. */
export function pathRule(field: string, text: string | undefined): RuleBreak[] {
  const problem = text === undefined ? null : problemOf(text);
  return problem === null ? [] : [{ field, code: "invalid_path", message: problem }];
}

/** Validation of a path from the rest of a URL; the first slash belongs to the URL. */
export function rawPathRule(text: string | undefined): RuleBreak[] {
  return text === undefined ? [] : pathRule("path", rooted(text));
}

/** Normalizes a path as in responses: `/a/b`. Throws invalid_path. */
export function parsePath(text: string): string {
  const problem = problemOf(text);
  if (problem !== null) throw new ServiceError("invalid_path", { detail: problem });
  return `/${namesOf(text).join("/")}`;
}

export function parseRawPath(text: string): string {
  return parsePath(rooted(text));
}

function rooted(text: string): string {
  return text.startsWith("/") ? text : `/${text}`;
}

function namesOf(text: string): string[] {
  return text.split("/").filter((name) => name !== "" && name !== ".");
}

function problemOf(text: string): string | null {
  if (!text.startsWith("/")) return "The path is not absolute: it must begin with /.";
  if (!text.isWellFormed()) return "The path is not Unicode text.";
  if (text.includes("\0")) return "The path contains a NUL.";
  if (Buffer.byteLength(text) >= MAX_PATH_BYTES) return `The path has ${MAX_PATH_BYTES} bytes or more.`;
  for (const name of namesOf(text)) {
    if (name === "..") return 'The path contains "..".';
    if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `A name in the path is over ${MAX_NAME_BYTES} bytes.`;
  }
  return null;
}
