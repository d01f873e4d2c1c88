/**
 * Owns pressing every control of a page that is no link, as somebody would who tries them all: those too that come up by pressing others.
 * What could not be pressed is told of with the reason.
 */
const CONTROLS = ["main button", "main select", "main summary", "main input[type=checkbox]", ".choice-of-browser"];
/** What is made anew whenever it is pressed is not pressed for ever. */
const MOST = 80;
const PRESS = { timeout: 5000, noWaitAfter: true };

/** How many were pressed, and what could not be: which, where, and why. */
export async function pressControls(page) {
  const told = { pressed: 0, unpressed: [] };
  const left = page.locator(CONTROLS.map((each) => `${each}:not(:disabled):not([data-tried]):visible`).join(", "));
  for (let tries = 0; tries < MOST; tries++) {
    // What pressing brings up is drawn with the next frame.
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    const [control] = await left.elementHandles();
    if (!control) break;
    const name = await control.evaluate((each) => {
      each.dataset.tried = "";
      return `${each.localName} ${each.textContent.trim().slice(0, 60)}`;
    });
    try {
      await control.click(PRESS);
      told.pressed++;
    } catch (error) {
      // One that went away before it could be pressed is none any more.
      const isThere = await control.evaluate((each) => each.isConnected).catch(() => false);
      if (isThere) told.unpressed.push(`${new URL(page.url()).pathname}: ${name}: ${error.message}`);
    }
    await page.keyboard.press("Escape");
  }
  // The colours and the times that were chosen: the next page is looked at as it comes.
  await page.evaluate(() => localStorage.clear());
  return told;
}
