/** Styles of single pages: loaded with the page's code, so that the first page loads less. */
export function addStyle(text: string): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets.push(sheet);
}
