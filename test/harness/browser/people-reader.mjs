/**
 * Two people in real browsers: `node people-reader.mjs CHROMIUM URL SETUP-LINK PICTURES`, run by Node because Playwright does not work
 * within Bun. The first comes in by the setup link, by keyboard alone, makes a key and invites the second, whose browser runs no
 * scripts. Prints one JSON object with what was seen; pictures of every page, wide and narrow, light and dark, go to PICTURES.
 */

import { openBrowser, press, tabTo, type } from "./browser.mjs";

const [executablePath, url, setupLink, pictures] = process.argv.slice(2);
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);

const seen = {};
try {
  const ada = await open();
  await ada.goto(setupLink);
  await ada.getByRole("heading", { name: "Set up roomd" }).waitFor();
  seen.address = ada.url();
  await look(ada, "setup");
  await type(ada, "Your name", "Ada");
  await type(ada, "E-mail", "ada@example.org");
  await type(ada, "Password", "seven green umbrellas");
  await press(ada, "Set up");
  seen.inside = ada.url();
  await press(ada, "/account");
  await look(ada, "account");

  await press(ada, "API keys");
  await look(ada, "keys-none");
  await type(ada, "Name", "laptop");
  await press(ada, "Create key");
  seen.exports = await ada.locator("#exports").textContent();
  await look(ada, "keys-made");
  await tabTo(ada, "Copy both lines");
  await ada.keyboard.press("Enter");
  await ada.getByText("Copied.", { exact: true }).waitFor();
  seen.copied = await ada.evaluate(() => navigator.clipboard.readText());

  await press(ada, "Members");
  await press(ada, "Create invitation link");
  const link = await ada.locator("#link").textContent();
  await look(ada, "members");

  const invited = await open();
  await invited.goto(link);
  await look(invited, "invite");

  const bob = await open({ javaScriptEnabled: false });
  await bob.goto(link);
  await type(bob, "Your name", "Bob");
  await type(bob, "E-mail", "bob@example.org");
  await type(bob, "Password", "another long secret").catch(() => {});
  await bob.locator("button.main").click();
  seen.bob = bob.url();
  await bob.goto(`${url}/account/keys`);
  await bob.locator("input[name=name]").fill("bob's");
  await bob.getByRole("button", { name: "Create key" }).click();
  seen.bobs_key = await bob.locator("#exports").textContent();
  seen.without_script = await bob.locator("button[data-copy]:visible").count();
  await bob.getByRole("button", { name: "Sign out" }).click();
  seen.signed_out = bob.url();
  await bob.goto(`${url}/account`);
  seen.outside = bob.url();

  await ada.goto(`${url}/org/members`);
  await look(ada, "members-two");
  await ada.setViewportSize({ width: 760, height: 900 });
  const whole = 'td[data-label="E-mail"] bdi, td time, td[data-label="Role"] form';
  seen.member_lines = await ada.locator(whole).evaluateAll((all) =>
    all.map((each) => {
      const tops = [...each.querySelectorAll("select, button")].map((part) => part.getBoundingClientRect());
      const lines = new Set([...each.getClientRects()].map(({ top }) => top)).size;
      return tops.length === 2 ? Number(tops[1].left < tops[0].right) + 1 : lines;
    }),
  );
  await ada.setViewportSize({ width: 1280, height: 900 });
  await ada.goto(`${url}/account/sessions`);
  await look(ada, "sessions");
  await ada.goto(`${url}/account/keys`);
  await look(ada, "keys");

  const nobody = await open();
  await nobody.goto(`${url}/signin`);
  await look(nobody, "signin");
  await type(nobody, "E-mail", "ada@example.org");
  await type(nobody, "Password", "wrong");
  await press(nobody, "Sign in");
  seen.refused = await nobody.getByRole("alert").textContent();
  await look(nobody, "signin-refused");
} finally {
  await close();
}
console.log(JSON.stringify({ ...seen, ...noted }));
