/**
 * Classification of audit records of read-only calls. The last word of an event's name is the criterion, and a test checks every operation
 * for it. Refused and failed reads are shown anyway, unless a page of the web made the call.
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
