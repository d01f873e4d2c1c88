/** Announces a text once, to screen readers and in a corner of the page: at most once a second, so that each can be read out completely. */
const place = () => document.querySelector(".said");
let last = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Display time of a word, and of a sentence. */
export const SEEN_MS = 2000;
const SENTENCE_MS = 8000;
/** No word is longer. */
const WORD_LETTERS = 20;

export function say(text: string): void {
  clearTimeout(timer);
  const wait = Math.max(0, last + 1000 - performance.now());
  timer = setTimeout(() => {
    last = performance.now();
    const element = place();
    if (!element) return;
    element.textContent = text;
    timer = setTimeout(
      () => {
        element.textContent = "";
      },
      text.length > WORD_LETTERS ? SENTENCE_MS : SEEN_MS,
    );
  }, wait);
}
