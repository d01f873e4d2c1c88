/** Destination after a sign-in, stored in the browser: only paths of this list, so that a link cannot name another address. */
import { ROUTES } from "../routes.ts";
import type { Outcome } from "./handler.ts";

export const AUTHORIZE = "/authorize";
export const DEVICE = "/device";

/** Limit of a place: as base64 in a cookie it has 4,000 characters; browsers store no cookie above 4,096. */
const MAX_CHARACTERS = 3000;
/** An arbitrary origin, by which places are parsed as browsers parse them. */
const ORIGIN = "http://here.invalid";

const HUB = Object.entries(ROUTES)
  .filter(([path, { isHub }]) => isHub && path !== "/")
  .map(([path]) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/?#]+")}(?:\\?[^#]*)?$`));
const KEPT = [/^\/(authorize|device)\?/, /^\/go\/[^/?#\\]{1,800}$/, ...HUB];

/** Null if we have not stored it. */
export function placeIn(cookie: string | null): string | null {
  const place = cookie === null ? "" : Buffer.from(cookie, "base64url").toString();
  return isKept(place) ? place : null;
}

/** After the sign-in that a handler requires, the visitor returns to this path, with its query if any. */
export function comingBack(outcome: Outcome, place: string): Outcome {
  if (!("to" in outcome) || outcome.to !== "/signin" || !isKept(place)) return outcome;
  return { ...outcome, cookies: { ...outcome.cookies, asked: Buffer.from(place).toString("base64url") } };
}

/** Whether a browser that is sent there arrives at exactly that path: not at another by its dots, nor at another origin. */
const isKept = (place: string): boolean =>
  place.length <= MAX_CHARACTERS &&
  /^[\x21-\x7e]+$/.test(place) &&
  KEPT.some((each) => each.test(place)) &&
  new URL(place, ORIGIN).href === ORIGIN + place;
