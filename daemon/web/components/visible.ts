/** Makes invisible or misleading characters of a text visible, as signs. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROL = /[\p{Cf}\p{Zl}\p{Zp}\u0000-\u0008\u000b-\u001f\u007f-\u009f\u115f\u1160\u2800\u3164\uffa0]|\u034f/gu;

/** Replaces characters that are invisible, or would not be displayed as they are, by signs. */
export function visible(text: string): string {
  return text.replaceAll(CONTROL, (each) => {
    const code = each.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}
