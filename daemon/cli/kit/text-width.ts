/** Width of a text in terminal columns: East Asian wide characters and emoji take two, combining characters none. */

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const NONE = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]$/u;
const PLAIN = /^[\x20-\x7e]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const COLOUR = /\u001b\[[\d;]*m/g;

const graphemes = new Intl.Segmenter();

export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text.replace(COLOUR, ""))) {
    if (WIDE.test(segment)) width += 2;
    else if ([...segment].some((character) => !NONE.test(character))) width += 1;
  }
  return width;
}
