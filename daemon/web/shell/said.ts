/** Owns what is said once to who reads by ear, and in a corner to who sees: at most once a second, so that it can be heard out. */
const place = () => document.querySelector(".said");
let last = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string): void {
  clearTimeout(timer);
  const wait = Math.max(0, last + 1000 - performance.now());
  timer = setTimeout(() => {
    last = performance.now();
    const said = place();
    if (said) said.textContent = text;
  }, wait);
}
