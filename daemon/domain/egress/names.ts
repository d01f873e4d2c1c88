/** Normalizes host names for comparison: lower case, ASCII, without the final dot. */
import { domainToASCII } from "node:url";

const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MOST_CHARACTERS = 253;

/** The name as it is compared; null for what is no host name, addresses in whatever spelling among it. */
export function canonicalName(text: string): string | null {
  if (text.length > MOST_CHARACTERS + 1) return null;
  const bare = text.endsWith(".") ? text.slice(0, -1) : text;
  // It would end the name or begin another part of a URL.
  if (/[\s/\\?#@:%[\]<>^|]/.test(bare)) return null;
  const ascii = isAscii(bare) ? bare.toLowerCase() : domainToASCII(bare);
  if (ascii === "" || ascii.length > MOST_CHARACTERS) return null;
  const labels = ascii.split(".");
  if (!labels.every((label) => LABEL.test(label))) return null;
  // Resolvers take what ends in a number for an address: 127.1, 0x7f.1, 2130706433.
  return isNumeric(labels.at(-1) ?? "") ? null : ascii;
}

/** Whether something is an address in a spelling that only some programs read as one. */
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
