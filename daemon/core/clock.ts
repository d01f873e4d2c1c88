/** Formats times: RFC 3339 UTC with milliseconds. */
export function now(): string {
  return new Date().toISOString();
}

export function at(ms: number): string {
  return new Date(ms).toISOString();
}

/** The moment `seconds` after an RFC 3339 moment. */
export function after(moment: string, seconds: number): string {
  return at(Date.parse(moment) + seconds * 1000);
}
