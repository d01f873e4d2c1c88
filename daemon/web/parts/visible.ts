/** Owns what is seen of text that would not be seen, or not as it is: signs in its place. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROL = /[\p{Cf}\p{Zl}\p{Zp}\u0000-\u0008\u000b-\u001f\u007f-\u009f\u115f\u1160\u2800\u3164\uffa0]|\u034f/gu;

/** What nobody would see, or would not see as it is, as signs. */
export function visible(text: string): string {
  return text.replaceAll(CONTROL, (each) => {
    const code = each.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}
