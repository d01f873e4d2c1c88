/** HTML of a text that may have megabytes, escaped in steps of the event loop. */
import type { Steps } from "../../core/loop/index.ts";
import { raw } from "../../web/document.tsx";

/** Attributes of an element with a text as its content. */
export type LongText = ReturnType<typeof raw>;

/** Characters of a step: well under one millisecond. */
const STEP = 16 * 1024;

export function* longText(text: string): Steps<LongText> {
  let html = "";
  for (let from = 0; from < text.length; from += STEP) {
    html += escaped(text.slice(from, from + STEP));
    yield;
  }
  return raw(html);
}

const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
