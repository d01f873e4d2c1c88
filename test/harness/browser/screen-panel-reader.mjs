/**
 * The page of a screen in the hub, at a real screen of this host: `node screen-panel-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is
 * JSON: cookies of who is signed in, a room, an agent, and the port at which screen.test.ts has the screen in the service's place. What happens at the
 * screen is asked for by a line, as screen-reader.mjs does. Prints as its last line one JSON object with what was seen.
 */
import { createInterface } from "node:readline";
import { openBrowser } from "./browser.mjs";
import { resize, useClipboard } from "./screen-panel.mjs";

const [executablePath, url, pictures, told] = process.argv.slice(2);
const { cookies, room, agent, port } = JSON.parse(told);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const happens = async (what) => {
  console.log(what);
  return JSON.parse((await lines.next()).value);
};
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const { paths } = await fetch(`${url}/v1/openapi.json`).then((response) => response.json());
const { example } = paths["/v1/rooms/{room_id}/sandboxes/{sandbox}"].get.responses["200"].content["application/json"];
const sandbox = { ...example, room_id: room, agent_id: agent, template_id: "desktop" };

/** Somebody at the page, which alone may ask another port, and how many WebSockets they have opened. */
async function somebody() {
  const page = await open({ reducedMotion: "reduce", bypassCSP: true });
  const sockets = { opened: 0 };
  await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
  await page.route(`**/v1/rooms/${room}/sandboxes/${agent}`, (route) => route.fulfill({ json: sandbox }));
  const picture = await page.screenshot();
  await page.route("**/sandboxes/*/screen/recordings", (route) => route.fulfill({ json: { items: [] } }));
  await page.route("**/sandboxes/*/screen", (route) => route.fulfill({ contentType: "image/png", body: picture }));
  page.on("websocket", (socket) => {
    if (!socket.url().endsWith("/v1/live/ws")) sockets.opened++;
  });
  await page.addInitScript((port) => {
    const construct = (WebSocket, [at, protocols]) =>
      new WebSocket(/\/screen\/ws/.test(at) ? `ws://127.0.0.1:${port}/` : at, protocols);
    globalThis.WebSocket = new Proxy(globalThis.WebSocket, { construct });
  }, port);
  await page.goto(`${url}/rooms/${room}/agents/${agent}/screen`);
  await page.getByText("seen live", { exact: true }).waitFor();
  return { page, sockets };
}

const watcher = await somebody();
const { page } = await somebody();
await page.getByText("Drive it").click();
await page.getByLabel("The ticket").fill(await happens("ticket"));
await page.getByRole("button", { name: "Drive" }).click();
await page.getByText("you drive", { exact: true }).waitFor();
await page.getByText("appears in this place").waitFor();
await look(page, "screen-panel-empty");
const clipboard = await useClipboard(page, happens);
await happens("copy");
await page.getByText("were left out").waitFor({ state: "detached" });
await look(page, "screen-panel");
const size = await resize(page, happens);
// On a narrow window a screen becomes as small as a screen may be.
await page.setViewportSize({ width: 320, height: 800 });
await page.getByRole("button", { name: "Fit to this window" }).click();
await page.getByText("320 × 640", { exact: true }).waitFor();
await page.screenshot({ path: `${pictures}/screen-panel-fitted-narrow.png`, fullPage: true });
// Who only looks has followed, on the one connection, and was shown nothing of the clipboard.
await watcher.page.getByText("320 × 640", { exact: true }).waitFor();
const watched = {
  opened: watcher.sockets.opened,
  panels: await watcher.page.locator(".from-screen, .screen-size").count(),
};
// What was copied goes with driving.
await page.getByRole("button", { name: "Stop driving" }).click();
await page.getByText("seen live", { exact: true }).waitFor();
await page.getByText("Drive it").waitFor();
const left = await page.locator(".from-screen, .screen-size").count();
await close();
process.stdin.destroy();
console.log(JSON.stringify({ clipboard, size, watched, left, ...noted }));
