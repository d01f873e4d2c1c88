/** Timeout for another host: a stall of the requesting host does not count against it. */
import { expect, test } from "vitest";
import { AdaptiveTimeout } from "../../../../daemon/edge/hosts/adaptive-timeout.ts";

test("a reply during a stall of the requester is accepted, and a silent host is not awaited longer", async () => {
  using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("here") });
  const patience = new AdaptiveTimeout();
  const pending = fetch(server.url).then((answer) => answer.text());
  const outcome = patience.until("other", pending, 300);
  await Bun.sleep(0);
  Bun.sleepSync(500);
  expect(await outcome).toBe("here");
  const startedAt = performance.now();
  expect(await patience.until("other", new Promise(() => {}), 300)).toBe(null);
  expect(performance.now() - startedAt).toBeGreaterThan(290);
  expect(performance.now() - startedAt).toBeLessThan(1000);
});
