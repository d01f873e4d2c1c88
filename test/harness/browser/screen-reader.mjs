/**
 * The page of a screen in the hub: `node screen-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is JSON: cookies of who is signed in,
 * the room and the agent. What happens in the service is asked for by a line, and has been done when a line comes back. Prints as its
 * last line one JSON object with what was seen.
 */
import { createInterface } from "node:readline";
import { openBrowser } from "./browser.mjs";
import { resize, useClipboard } from "./screen-panel.mjs";

const [executablePath, url, pictures, told] = process.argv.slice(2);
const { cookies, room, agent } = JSON.parse(told);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const happens = async (what) => {
  console.log(what);
  return JSON.parse((await lines.next()).value);
};
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const SLOW = { timeout: 240_000 };
const page = await open({ reducedMotion: "reduce" });
await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
const seen = { heard: [] };

const canvas = page.locator(".screen-live canvas");
const live = () => page.getByText("seen live", { exact: true }).waitFor(SLOW);
/** Resolves once the middle of what is drawn has nearly the colour that the program paints for this key: pictures come by JPEG. */
const painted = (key) =>
  page.waitForFunction(
    (code) => {
      const drawn = document.querySelector(".screen-live canvas");
      if (!drawn?.width) return false;
      const { data } = drawn.getContext("2d").getImageData(drawn.width / 2, (drawn.height * 5) / 8, 1, 1);
      return [code, 1, 200].every((each, at) => Math.abs(each - data[at]) <= 3);
    },
    key.charCodeAt(0),
    SLOW,
  );

await page.goto(`${url}/rooms/${room}/agents/${agent}/screen`);
await live();
await painted("w");
await look(page, "screen-live");
// Who only looks is not heard, whatever is pressed.
await canvas.click();
await page.keyboard.type("j");

const ticket = await happens("ticket");
await page.getByText("Drive it").click();
await page.getByLabel("The ticket").fill("sdt_nothing_that_opens");
await page.getByRole("button", { name: "Drive" }).click();
await page.getByText("rejected this ticket").first().waitFor(SLOW);
await live();
await page.getByLabel("The ticket").fill(ticket);
await page.getByRole("button", { name: "Drive" }).click();
await page.getByText("you drive", { exact: true }).waitFor(SLOW);
// The keyboard is the screen's from then on.
await page.keyboard.type("p");
await painted("p");
seen.heard.push(await happens("heard"));
await look(page, "screen-driven");
seen.clipboard = await useClipboard(page, happens);
seen.size = await resize(page, happens);
// What was pressed beside the screen has not reached it, and the keyboard is its own again.
await canvas.focus();
for (let count = 0; count < 3; count++) await page.keyboard.press("Escape");
await page.getByText("you drive", { exact: true }).waitFor({ state: "detached", ...SLOW });
await live();

// A pause ends it, and the page goes on by itself afterwards.
await happens("pause");
await page.getByText("seen live", { exact: true }).waitFor({ state: "detached", ...SLOW });
await look(page, "screen-paused");
await happens("resume");
await live();
await page.waitForFunction(() => document.querySelector(".screen-live canvas")?.width > 0, undefined, SLOW);
await canvas.click();
await page.keyboard.type("j");
seen.heard.push(await happens("heard"));
await close();
process.stdin.destroy();
console.log(JSON.stringify({ ...seen, ...noted }));
