/**
 * Passkeys in real browsers: `node passkey-reader.mjs CHROMIUM URL SETUP-LINK PICTURES`, run by Node because Playwright does not work
 * within Bun. By keyboard alone, with the browser's own authenticator for tests: the first owner comes in and invites a second person,
 * who joins by a passkey and makes a key. Prints `stale` where time is to go by for proofs, and goes on at a line of input; last one
 * JSON object with what was seen.
 */

import { createInterface } from "node:readline/promises";
import { keepPasskeys, openBrowser, press, tabTo, type } from "./browser.mjs";

const [executablePath, url, setupLink, pictures] = process.argv.slice(2);
const { open: openPage, look, noted, close } = await openBrowser(executablePath, url, pictures);

/** A browser of somebody, with what keeps their passkeys. */
async function open(keeper = true) {
  const page = await openPage();
  if (keeper) await keepPasskeys(page);
  return page;
}
const textOf = (page) => page.locator("main").textContent();

const seen = {};
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
try {
  const ada = await open();
  await ada.goto(setupLink);
  await ada.getByRole("heading", { name: "Set up roomd" }).waitFor();
  await look(ada, "setup");
  await type(ada, "Your name", "Ada");
  await type(ada, "E-mail", "ada@example.org");
  await press(ada, "Use a passkey instead");
  seen.ada = ada.url();
  await press(ada, "/account");
  await press(ada, "Members");
  await press(ada, "Create invitation link");
  const link = await ada.locator("#link").textContent();

  const bob = await open();
  await bob.goto(link.replace("127.0.0.1", "localhost"));
  await look(bob, "invite");
  await type(bob, "Your name", "Bob");
  await type(bob, "E-mail", "bob@example.org");
  await press(bob, "Use a passkey instead");
  seen.bob = bob.url();
  await press(bob, "/account");
  await press(bob, "API keys");
  await type(bob, "Name", "bob's");
  await press(bob, "Create key");
  seen.bobs_key = await bob.locator("#exports").textContent();

  await press(bob, "Sign out");
  await look(bob, "signin");
  await press(bob, "Sign in with a passkey");
  seen.again = bob.url();
  await press(bob, "/account");

  process.stdout.write("stale\n");
  await lines.next();
  await press(bob, "Sign-in methods");
  await look(bob, "ways");
  await press(bob, "Add a passkey");
  await look(bob, "proof");
  await press(bob, "Use a passkey");
  await look(bob, "ways-add");
  await type(bob, "Name of the new passkey", "the same");
  await tabTo(bob, "Create passkey");
  await bob.keyboard.press("Enter");
  await bob.getByRole("alert").waitFor();
  seen.same = await bob.getByRole("alert").textContent();
  await look(bob, "ways-same");
  const { cdp, authenticatorId } = await keepPasskeys(bob, "usb");
  await type(bob, "Name of the new passkey", "a stick");
  await press(bob, "Create passkey");
  seen.added = await textOf(bob);
  await look(bob, "ways-two");
  const { credentials } = await cdp.send("WebAuthn.getCredentials", { authenticatorId });
  seen.stick = credentials.map(({ rpId, isResidentCredential }) => [rpId, isResidentCredential]);
  for (const [name, what] of [
    ["a stick", "first"],
    ["Passkey", "last"],
  ]) {
    await tabTo(bob, `Remove ${name}`);
    await bob.keyboard.press("Enter");
    await press(bob, "Remove permanently");
    seen[what] = await textOf(bob);
  }
  await look(bob, "ways-last");

  const nobody = await open(false);
  await nobody.goto(`${url.replace("localhost", "127.0.0.1")}/device?user_code=BCDF-GHJK`);
  seen.address = nobody.url();
} finally {
  await close();
}
console.log(JSON.stringify({ ...seen, ...noted }));
process.exit(0);
