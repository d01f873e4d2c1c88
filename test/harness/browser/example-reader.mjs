/**
 * The worked example followed in the hub: `node example-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is JSON: cookies of who is signed
 * in, and the name that is refused. What happens in the service is asked for by a line, and has been done when a line comes back; what is
 * begun goes on meanwhile. Prints as its last line one JSON object with what was seen.
 */
import { createInterface } from "node:readline";
import { openBrowser } from "./browser.mjs";

const [executablePath, url, pictures, told] = process.argv.slice(2);
const { cookies, refused } = JSON.parse(told);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const happens = async (what) => {
  console.log(what);
  return JSON.parse((await lines.next()).value);
};
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const seen = {};
const SLOW = { timeout: 60_000 };
const ROOM = `${url}/rooms/team`;

const page = await open({ reducedMotion: "reduce" });
await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
let taken = 0;
const picture = async (name) => {
  taken++;
  await page.screenshot({ path: `${pictures}/example-${taken}-${name}.png` });
};
/** Goes there within the page, as by a link: nothing is loaded anew. */
const go = async (path) => {
  await page.evaluate((path) => {
    const link = document.createElement("a");
    link.href = path;
    document.querySelector("main").append(link);
    link.click();
    link.remove();
  }, path);
};
const text = (shown) => page.locator("main").getByText(shown).first();

// From before there is a room.
await page.goto(`${url}/rooms`);
await page.locator(".state.live").waitFor(SLOW);
await happens("begin the example");
await page.getByText("team", { exact: true }).first().waitFor(SLOW);
await picture("a-room-comes");
await go(`${ROOM}/timeline?span=5m`);
await page.locator(".lane").filter({ hasText: "reviewer" }).first().waitFor(SLOW);
await picture("agents-come");
// On a quick host it lies so near to other marks that it is one with them; in the list it is by itself.
await go(`${ROOM}/timeline?as=list`);
await text(" to worker").waitFor(SLOW);
await go(`${ROOM}/timeline?span=1m`);
await page.locator(".mark").first().waitFor(SLOW);
await picture("the-first-message");
await go(`${ROOM}/waits`);
await text("worker").waitFor(SLOW);
await picture("who-waits");
await go(`${ROOM}/messages`);
await text("approved").waitFor(SLOW);
await picture("approved");
await happens("end the example");
await go(`${ROOM}/timeline?span=all`);
await page.locator("[aria-label*='barrier merged']").first().waitFor(SLOW);
await look(page, "example-timeline");
await picture("merged");
await go(`${ROOM}/agents/planner/commands`);
await page.locator("tbody [data-row]").last().click();
await text("sums its arguments").waitFor(SLOW);
seen.merged = await page.locator("main").textContent();
await picture("what-was-merged");
await go(`${ROOM}/drive`);
await text("project").waitFor(SLOW);
await picture("the-drive");

// Who wait for each other, and do not say so to anybody.
await go(`${ROOM}/waits`);
await text("No agent is waiting").waitFor(SLOW);
const ring = page.locator(".ring[role=alert]");
const deadlock = happens("deadlock");
await ring.waitFor(SLOW);
const deadlockAt = await page.evaluate(() => Date.now());
seen.deadlock = await ring.textContent();
await deadlock;
await look(page, "example-deadlock");
const { items } = await page.evaluate(
  async () => await (await fetch("/v1/rooms/team/audit?event=message.&limit=1", { credentials: "same-origin" })).json(),
);
seen.deadlock_ms = deadlockAt - Date.parse(items[0].at);

/** When the page shows this text, by its own clock: to the moment, while Playwright looks now and then. */
const shownAt = async (shown) => {
  const at = await page.evaluateHandle((shown) => {
    const main = document.querySelector("main");
    const found = Promise.withResolvers();
    const watcher = new MutationObserver(() => {
      if (main.textContent.includes(shown)) found.resolve(Date.now());
    });
    watcher.observe(main, { subtree: true, childList: true, characterData: true });
    return { is: found.promise };
  }, shown);
  return () => at.evaluate(({ is }) => is);
};
/** From a record on until what it is about was shown. */
const sinceRecord = async (room, event, at) => {
  const { items } = await page.evaluate(
    async (path) => await (await fetch(path, { credentials: "same-origin" })).json(),
    `/v1/rooms/${room}/audit?event=${event}&order=asc&limit=1`,
  );
  return at - Date.parse(items[0].at);
};

// How soon anything is seen here: a room that is made.
await go(`${url}/rooms`);
await text("team").waitFor(SLOW);
const roomShown = await shownAt("just-made");
await happens("make a room");
seen.room_ms = await sinceRecord("just-made", "room.created", await roomShown());

// A name that is not on the list.
await go(`${ROOM}/agents/reviewer/network`);
await text("May connect").waitFor(SLOW);
const refusalShown = await shownAt(refused);
await happens("refuse");
seen.refusal_ms = await sinceRecord("team", "egress.denied", await refusalShown());
await look(page, "example-refused");
await page.goto(`${ROOM}/timeline?span=5m`);
await page.locator("[aria-label*='no connection to']").first().waitFor(SLOW);
await picture("refused-on-the-timeline");

// A terminal: watched, watched again from its beginning, over the service's end, and typed at with a ticket.
await go(`${ROOM}/agents/worker/terminal`);
await text("No terminal is open").waitFor(SLOW);
await page.evaluate(() => navigator.clipboard.writeText("untouched"));
const sent = [];
page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => sent.push(String(payload))));
await happens("open a terminal");
const drawn = (what) =>
  page.waitForFunction((what) => document.querySelector(".xterm-rows")?.textContent.includes(what), what, SLOW);
await drawn("seen link here");
await picture("a-terminal");
seen.terminal = {
  title: await page.title(),
  clipboard: await page.evaluate(() => navigator.clipboard.readText()),
  answered: sent.length,
};
await page.reload();
await drawn("seen link here");
await happens("stop the service");
await page.getByText("reconnecting").first().waitFor(SLOW);
await happens("start the service");
await text("watching").waitFor(SLOW);
seen.terminal.again = await page.locator(".xterm-rows").textContent();
const ticket = await happens("make a ticket");
await page.getByText("Type here").click();
await page.getByLabel("The ticket").fill(ticket);
await page.getByRole("button", { name: "Type", exact: true }).click();
await page.locator(".output-head").getByText("you type").waitFor(SLOW);
await page.keyboard.type("echo typed-$((6 * 7))\n");
await drawn("typed-42").catch(async (error) => {
  await picture("not-typed");
  throw error;
});
seen.terminal.typed = await page.locator(".output-head").textContent();
await look(page, "example-terminal");

await close();
process.stdin.destroy();
console.log(JSON.stringify({ ...seen, ...noted }));
