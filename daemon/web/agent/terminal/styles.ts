/**
 * Adapts xterm.js to a CSP without inline styles: each created `<style>` gets the page's nonce, and a `style` attribute is set as the same
 * style by script, which the policy allows.
 */
let isDone = false;

export function allowStyles(nonce: string): void {
  if (isDone) return;
  isDone = true;
  const make = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const made = make(name, options);
    if (name === "style") made.nonce = nonce;
    return made;
  }) as typeof document.createElement;
  const set = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (this: Element, name, value) {
    if (name === "style" && this instanceof HTMLElement) this.style.cssText = value;
    else set.call(this, name, value);
  };
}
