/** Removes empty members from answers: a model pays for every token it reads. */
import type { Arguments } from "./call.ts";

/** Members that are kept whatever their value. */
const KEPT = ["ok", "items", "exit_code"];
/** Members with values that the client supplied. */
const VERBATIM = ["payload", "labels", "arguments"];

/** Removes null, false and empty members, at every depth. */
export function compact(value: Arguments): Arguments {
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    if (name === "payload") return member === undefined ? [] : [[name, member]];
    const shown = VERBATIM.includes(name) ? member : compactValue(member);
    return isEmpty(shown) && !(KEPT.includes(name) && shown !== undefined) ? [] : [[name, shown]];
  });
  return Object.fromEntries(members);
}

function compactValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compactValue);
  return typeof value === "object" && value !== null ? compact(value as Arguments) : value;
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
