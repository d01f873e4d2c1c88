/**
 * What a person who drives does beside a screen, for readers of its page: takes what was copied there, puts a text into its clipboard,
 * and makes it as large as the window and as it was. `happens` has the sandbox do `copy`, `copy-long`, `pasted` and `size`.
 */
const SLOW = { timeout: 240_000 };

export async function useClipboard(page, happens) {
  const seen = {};
  const field = page.getByLabel("Copied on the screen");
  const copy = page.locator(".from-screen").getByRole("button");
  const mine = () => page.evaluate(() => navigator.clipboard.readText());
  await page.evaluate(() => navigator.clipboard.writeText("untouched"));
  await happens("copy");
  await field.waitFor(SLOW);
  seen.shown = await field.inputValue();
  seen.before = await mine();
  await copy.click();
  await page.locator(".from-screen").getByRole("button", { name: "Copied" }).waitFor();
  seen.mine = await mine();
  await happens("copy-long");
  await page.getByText("were left out").waitFor(SLOW);
  seen.most = (await field.inputValue()).length;
  // Where a page may not copy, the text is marked.
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { configurable: true, value: undefined }));
  await copy.click();
  seen.marked = await field.evaluate((field) => [document.activeElement === field, field.selectionEnd]);
  await page.evaluate(() => delete navigator.clipboard);
  await page.getByLabel("Text for its clipboard").fill("typed in the hub: gr\u00fc\u00df");
  await page.getByRole("button", { name: "Copy into it" }).click();
  seen.pasted = await happens("pasted");
  return seen;
}

export async function resize(page, happens) {
  const becomes = (is) =>
    page.waitForFunction(
      ([size, isNot]) => {
        const { width, height } = document.querySelector(".screen-live canvas") ?? {};
        return (`${width}x${height}` === size) !== isNot;
      },
      is,
      SLOW,
    );
  const room = await page.locator(".screen-live").evaluate(({ clientWidth }) => clientWidth);
  await page.getByRole("button", { name: "Fit to this window" }).click();
  await becomes(["1280x800", true]);
  const { width, height } = await page
    .locator(".screen-live canvas")
    .evaluate(({ width, height }) => ({ width, height }));
  const fitted = await happens("size");
  const isPressed = await page.getByRole("button", { name: "Fit to this window" }).getAttribute("aria-pressed");
  await page.getByRole("button", { name: "1280 × 800" }).click();
  await becomes(["1280x800", false]);
  return { is_room: width === room, is_told: fitted === `${width}x${height}`, isPressed, back: await happens("size") };
}
