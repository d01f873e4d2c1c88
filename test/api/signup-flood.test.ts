/**
 * Open sign-up under attack: 10,000 attempts of one address and of many. What is bounded is asserted; how long others wait meanwhile is
 * printed beside the same without the attack. Takes a minute, so it runs where ROOMD_TEST_LONG is 1.
 */
import { expect, test } from "vitest";
import { MailServer } from "../fixtures/mail-server.ts";
import { TestDaemon } from "../harness/daemon.ts";
import { until } from "../harness/guests.ts";
import { People } from "../harness/people.ts";

const ATTEMPTS = 10_000;
const AT_ONCE = 32;
const PER_DAY = 200;
const LETTERBOXES = 300;
const leftOut = process.env.ROOMD_TEST_LONG === "1" ? null : "it takes a minute: ROOMD_TEST_LONG=1 runs it";
if (leftOut !== null) console.log(`sign-up under attack: left out, because ${leftOut}`);

const percentile = (times: readonly number[], share: number) =>
  [...times].sort((a, b) => a - b)[Math.floor((times.length - 1) * share)] ?? 0;

test.skipIf(leftOut !== null)(
  "10,000 attempts get so many letters and not one more, and credits once an address",
  async () => {
    const mail = await MailServer.start();
    await using daemon = await TestDaemon.start({
      env: {
        ...mail.env,
        ROOMD_SIGNUP_MODE: "open",
        ROOMD_SIGNUP_PER_DAY: String(PER_DAY),
        ROOMD_SIGNUP_PER_HOUR: "10",
        ROOMD_HTTP_TRUSTED_PROXIES: "127.0.0.1",
      },
    });
    const people = await People.first(daemon);
    const quiet = await others(daemon, () => false, 500);
    const statuses: Record<string, number> = {};
    let next = 0;
    const attack = async () => {
      for (let n = next++; n < ATTEMPTS; n = next++) {
        // Every other one comes from the same address.
        const from = n % 2 === 0 ? "198.51.100.7" : `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
        const answer = await fetch(`${daemon.url}/signup`, {
          method: "POST",
          headers: {
            "content-type": "application/x-www-form-urlencoded",
            "sec-fetch-site": "same-origin",
            "x-forwarded-for": from,
          },
          body: new URLSearchParams({ email: `box${n % LETTERBOXES}@example.org` }).toString(),
        });
        statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
        await answer.body?.cancel();
      }
    };
    let isOver = false;
    const during = others(daemon, () => isOver);
    await Promise.all(Array.from({ length: AT_ONCE }, attack));
    isOver = true;
    const attacked = await during;
    const told = [quiet, attacked].map(
      (times) => `p50 ${percentile(times, 0.5).toFixed(1)} p99 ${percentile(times, 0.99).toFixed(1)} ms`,
    );
    console.log(
      `others, quiet: ${told[0]}; under ${ATTEMPTS} attempts: ${told[1]} (${attacked.length} calls); answers`,
      statuses,
    );

    const rows = people.sql((database) =>
      database.prepare("SELECT to_address FROM mails WHERE to_address <> ''").all(),
    );
    expect(rows.length).toBeLessThanOrEqual(PER_DAY);
    await until("all letters are sent", () => mail.letters.length === rows.length, 60_000);
    const each = Map.groupBy(mail.letters, ({ to }) => to[0]);
    expect(Math.max(...[...each.values()].map((letters) => letters.length))).toBeLessThanOrEqual(5);
    expect(statuses["429"]).toBeGreaterThan(ATTEMPTS / 2 - 100);
    const kept = (table: string) => people.sql((database) => database.prepare(`SELECT * FROM ${table}`).all()).length;
    expect([kept("orgs"), kept("users"), kept("signup_grants")]).toEqual([1, 1, 0]);
    expect(kept("links")).toBeLessThanOrEqual(PER_DAY);
    await mail.stop();
  },
  300_000,
);

/** How long somebody else's calls take, one after another, in milliseconds. */
async function others(daemon: TestDaemon, isOver: () => boolean, most = Number.POSITIVE_INFINITY): Promise<number[]> {
  const times: number[] = [];
  while (times.length < most && !isOver()) {
    const began = performance.now();
    expect((await daemon.api("GET", "/v1/rooms")).status).toBe(200);
    times.push(performance.now() - began);
  }
  return times;
}
