/** Parses a query: the last of a repeated parameter counts; bytes that are not UTF-8 are rejected. */
import { ServiceError } from "../../core/service-error.ts";

/** Throws invalid_query. */
export function readQuery(search: string): Record<string, string> {
  if (search === "") return {};
  try {
    // URLSearchParams would put U+FFFD in place of invalid text, and so name something else.
    decodeURIComponent(search);
  } catch {
    throw new ServiceError("invalid_query", { detail: "The query is not percent-encoded UTF-8." });
  }
  return Object.fromEntries(new URLSearchParams(search));
}
