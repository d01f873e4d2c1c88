/** How often the payment service is asked the same. */
import { expect, test } from "vitest";
import { Asked } from "../../../../daemon/domain/billing/asked.ts";

test("the same is asked once a second, whoever asks, and never again once it is so", async () => {
  let now = 0;
  let count = 0;
  let isPaid = false;
  const asked = new Asked(() => now);
  const ask = () =>
    asked.once("one", async () => {
      count++;
      return isPaid;
    });
  expect(await Promise.all(Array.from({ length: 1000 }, ask))).toEqual(Array.from({ length: 1000 }, () => false));
  expect(count).toBe(1);
  isPaid = true;
  expect(await ask()).toBe(false);
  now = 1_000;
  expect(await ask()).toBe(true);
  now = 1e9;
  expect([await ask(), count]).toEqual([true, 2]);
  await expect(asked.once("other", () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(await asked.once("other", async () => false)).toBe(false);
});
