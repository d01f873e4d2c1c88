/**
 * Owns which records of the audit are of nothing but looking. The name of an event says it by its last word, and a test holds
 * every operation to that. What was refused or failed is told all the same, unless a page of the web asked.
 */
export const READING_WORDS = [
  "read",
  "listed",
  "summarized",
  "verified",
  "followed",
  "measured",
  "located",
  "watched",
] as const;

const READING = new RegExp(`[._](?:${READING_WORDS.join("|")})$`);

export const isReadingEvent = (event: string): boolean => READING.test(event);

export const isReading = ({ event, outcome, source }: { event: string; outcome: string; source: string }): boolean =>
  isReadingEvent(event) && (outcome === "success" || source === "web");
