/** Owns where somebody goes on who has signed in first, as their browser keeps it: places of this list, and no address that a link could name. */

export const AUTHORIZE = "/authorize";
export const DEVICE = "/device";

/** A path, with its query where it has one. */
export const goOnTo = (place: string): string => Buffer.from(place).toString("base64url");

const PLACES = [/^\/(authorize|device)\?/, /^\/go\/[^/?#\\]{1,800}$/];

/** Null for what was not kept by us. */
export function placeIn(cookie: string | null): string | null {
  const place = cookie === null ? "" : Buffer.from(cookie, "base64url").toString();
  return PLACES.some((each) => each.test(place)) && /^[\x21-\x7e]+$/.test(place) ? place : null;
}
