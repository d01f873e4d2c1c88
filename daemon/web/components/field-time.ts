/** Timestamps in a date-time field, which has no zone: in UTC, or in the browser's. Pure. */

/** The moment as an input field expects it, to the second. */
export function fieldText(moment: number, isUtc: boolean): string {
  const aheadMs = isUtc ? 0 : new Date(moment).getTimezoneOffset() * 60_000;
  return new Date(moment - aheadMs).toISOString().slice(0, 19);
}

/** NaN if the text is invalid. */
export const fieldMoment = (text: string, isUtc: boolean): number => Date.parse(isUtc ? `${text}Z` : text);

/** The time zone in the field's label, for screen readers. */
export const zoneWords = (isUtc: boolean): string => (isUtc ? "UTC" : "your time");
