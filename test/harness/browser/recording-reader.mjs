/**
 * A recording of a screen in the hub: `node recording-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is JSON: cookies of who is signed
 * in, the room, the agent, the recording and the colours that it shows one after the other. Prints as its last line one JSON object with
 * what was seen.
 */
import { openBrowser } from "./browser.mjs";

const [executablePath, url, pictures, told] = process.argv.slice(2);
const { cookies, room, agent, recording, colours } = JSON.parse(told);
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const SLOW = { timeout: 240_000 };
const page = await open({ reducedMotion: "reduce" });
await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
const seen = { colours: [] };

/** Resolves once the middle of what is drawn has this colour. */
const painted = async (colour) => {
  const handle = await page.waitForFunction(
    (wanted) => {
      const drawn = document.querySelector(".played canvas");
      if (!drawn?.width) return false;
      const { data } = drawn.getContext("2d").getImageData(drawn.width / 2, (drawn.height * 5) / 8, 1, 1);
      const is = data.slice(0, 3).join();
      return is === wanted && is;
    },
    colour,
    SLOW,
  );
  seen.colours.push(await handle.jsonValue());
};

await page.goto(`${url}/rooms/${room}/agents/${agent}/screen?recording=${recording}`);
await page.getByRole("button", { name: "Pause" }).waitFor(SLOW);
await painted(colours[0]);
await look(page, "recording");
// Forward to its end, and back to its beginning.
const where = page.getByRole("slider");
await where.focus();
await page.keyboard.press("End");
await painted(colours[1]);
await page.keyboard.press("Home");
await page.getByRole("button", { name: "Play", exact: true }).first().click();
await painted(colours[0]);
await close();
process.stdin.destroy();
console.log(JSON.stringify({ ...seen, ...noted }));
