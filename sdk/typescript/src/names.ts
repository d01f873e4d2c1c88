/** Owns the names that things are given here. The same key is the same call also from another process: it makes the same names. */
import { createHash, randomInt, randomUUID } from "node:crypto";

/** Of what is made by this key; one that nobody has without it. */
export function nameOf(key: string | undefined): string {
  return `sdk-${key === undefined ? randomUUID() : digestOf(key)}`;
}

/** Of a room: it is shown to people, so that it is short where it may be. */
export function roomNameOf(key: string | undefined): string {
  return key === undefined ? `sdk-${randomInt(2 ** 47).toString(36)}` : nameOf(key);
}

/** As the SDK for Python makes it. */
function digestOf(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 32);
}
