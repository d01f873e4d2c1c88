/**
 * Ways that lead elsewhere and back, in a real browser: `node elsewhere-reader.mjs CHROMIUM URL PICTURES`. By keyboard alone, somebody signs in
 * by an account at an issuer, with script and without; an owner, whose cookies come as a line of input, goes to the payment service, comes
 * back and takes a key. Prints where the payment is, and goes on at a line of input; last one JSON object with what was seen.
 */
import { createInterface } from "node:readline/promises";
import { openBrowser, press } from "./browser.mjs";

const [executablePath, url, pictures] = process.argv.slice(2);
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async () => JSON.parse((await lines.next()).value);
const seen = {};

try {
  for (const [name, options] of [
    ["with_script", {}],
    ["without_script", { javaScriptEnabled: false }],
  ]) {
    const page = await open(options);
    await page.goto(`${url}/signin`);
    if (name === "with_script") await look(page, "signin-elsewhere");
    await page.getByRole("button", { name: "Sign in with Example" }).focus();
    await page.keyboard.press("Enter");
    if (name === "without_script") {
      await page.waitForURL(/\/signin\/return/);
      await page.getByRole("button").click();
    }
    await page.waitForURL(`${url}/`);
    await page.goto(`${url}/account`);
    seen[name] = await page.locator("main").textContent();
    if (name === "with_script") {
      await page.goto(`${url}/account/ways`);
      await look(page, "ways-elsewhere");
    }
  }

  const buyer = await open();
  await buyer.context().addCookies(Object.entries(await next()).map(([name, value]) => ({ name, value, url })));
  await buyer.goto(`${url}/billing`);
  await look(buyer, "billing-free");
  await press(buyer, "Upgrade to Starter");
  seen.paying = buyer.url();
  const checkout = seen.paying.split("/").at(-1);
  await buyer.goto(`${url}/billing/success?session_id=${checkout}`);
  await look(buyer, "billing-waiting");
  process.stdout.write(`${JSON.stringify({ checkout })}\n`);
  await next();
  // The page looks again by itself.
  await buyer.getByRole("heading", { name: "Thank you" }).waitFor();
  await look(buyer, "billing-paid");
  await press(buyer, "Show my API key");
  await look(buyer, "billing-key");
  seen.exports = await buyer.locator("#exports").textContent();
  await buyer.goto(`${url}/billing/success?session_id=${checkout}`);
  seen.again = await buyer.locator("main").textContent();
  await buyer.goto(`${url}/billing`);
  await look(buyer, "billing-starter");
  process.stdout.write(`${JSON.stringify({ failing: true })}\n`);
  await next();
  await buyer.goto(`${url}/billing`);
  await look(buyer, "billing-past-due");
  seen.past_due = await buyer.locator("main").textContent();
  await press(buyer, "Cards and invoices");
  seen.portal = buyer.url();
} finally {
  await close();
}
console.log(JSON.stringify({ ...seen, ...noted }));
process.exit(0);
