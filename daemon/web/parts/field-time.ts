/** Owns moments as a field of date and time has them, without a zone: in UTC, or in the browser's. Pure. */

/** As the field takes it, to the second. */
export function fieldText(moment: number, isUtc: boolean): string {
  const aheadMs = isUtc ? 0 : new Date(moment).getTimezoneOffset() * 60_000;
  return new Date(moment - aheadMs).toISOString().slice(0, 19);
}

/** NaN where the text is none. */
export const fieldMoment = (text: string, isUtc: boolean): number => Date.parse(isUtc ? `${text}Z` : text);

/** What is said of the field to who hears its label. */
export const zoneWords = (isUtc: boolean): string => (isUtc ? "UTC" : "your time");
