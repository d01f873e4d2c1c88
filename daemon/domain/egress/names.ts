/** Normalizes host names for comparison: lower case, ASCII, without the final dot. */
import { domainToASCII } from "node:url";

const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_CHARACTERS = 253;

/** The name in the form in which it is compared; null if it is not a host name, for example an address in any spelling. */
export function canonicalName(text: string): string | null {
  if (text.length > MAX_CHARACTERS + 1) return null;
  const bare = text.endsWith(".") ? text.slice(0, -1) : text;
  // These characters would end the name or begin another part of a URL.
  if (/[\s/\\?#@:%[\]<>^|]/.test(bare)) return null;
  const ascii = isAscii(bare) ? bare.toLowerCase() : domainToASCII(bare);
  if (ascii === "" || ascii.length > MAX_CHARACTERS) return null;
  const labels = ascii.split(".");
  if (!labels.every((label) => LABEL.test(label))) return null;
  // Resolvers treat a name that ends in a number as an address: 127.1, 0x7f.1, 2130706433.
  return isNumeric(labels.at(-1) ?? "") ? null : ascii;
}

/** Whether a text is an address in a spelling that only some programs parse as an address. */
export function looksNumeric(text: string): boolean {
  return isNumeric(text.replace(/\.$/, "").split(".").at(-1)?.toLowerCase() ?? "");
}

function isNumeric(label: string): boolean {
  return /^\d+$/.test(label) || /^0x[0-9a-f]*$/.test(label);
}

/** Whether all of it is visible ASCII. */
export function isAscii(text: string): boolean {
  return /^[\x21-\x7e]*$/.test(text);
}
