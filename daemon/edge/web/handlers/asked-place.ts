/** Owns where somebody goes on who has signed in first, as their browser keeps it: places of this list, and no address that a link could name. */
import { PLACES } from "../places.ts";
import type { Outcome } from "./handler.ts";

export const AUTHORIZE = "/authorize";
export const DEVICE = "/device";

/** As base64 in a cookie they have 4,000; browsers keep no cookie above 4,096. */
const MOST_CHARACTERS = 3000;
/** Any origin: a place is read as a browser will read it. */
const ORIGIN = "http://here.invalid";

const HUB = Object.entries(PLACES)
  .filter(([path, { isHub }]) => isHub && path !== "/")
  .map(([path]) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/?#]+")}(?:\\?[^#]*)?$`));
const KEPT = [/^\/(authorize|device)\?/, /^\/go\/[^/?#\\]{1,800}$/, ...HUB];

/** Null for what was not kept by us. */
export function placeIn(cookie: string | null): string | null {
  const place = cookie === null ? "" : Buffer.from(cookie, "base64url").toString();
  return isKept(place) ? place : null;
}

/** Who is sent to sign in first comes back to this path, with its query where it has one. */
export function comingBack(outcome: Outcome, place: string): Outcome {
  if (!("to" in outcome) || outcome.to !== "/signin" || !isKept(place)) return outcome;
  return { ...outcome, cookies: { ...outcome.cookies, asked: Buffer.from(place).toString("base64url") } };
}

/** Whether a browser that is sent there comes to just that path: not to another by its dots, nor to another origin. */
const isKept = (place: string): boolean =>
  place.length <= MOST_CHARACTERS &&
  /^[\x21-\x7e]+$/.test(place) &&
  KEPT.some((each) => each.test(place)) &&
  new URL(place, ORIGIN).href === ORIGIN + place;
