/** Rate limit of identical requests to the payment service. */
import { expect, test } from "vitest";
import { CheckoutQuestions } from "../../../../daemon/domain/billing/request-limit.ts";
import { MovedClock } from "../../../harness/hosts/moved-clock.ts";

test("requests are limited to a burst of five, then one a second, until a positive response", async () => {
  using clock = new MovedClock();
  let count = 0;
  let isPaid = false;
  const questions = new CheckoutQuestions();
  const ask = () =>
    questions.once("one", async () => {
      count++;
      return isPaid;
    });
  const all = await Promise.all(Array.from({ length: 1000 }, ask));
  expect([all.includes(true), count]).toEqual([false, 1]);
  for (let n = 0; n < 100; n++) await ask();
  expect(count).toBe(5);
  isPaid = true;
  expect(await ask()).toBe(false);
  clock.to(1_000);
  expect([await ask(), count]).toEqual([true, 6]);
  clock.to(1e9);
  expect([await ask(), count]).toEqual([true, 6]);
});

test("a failed response is not cached", async () => {
  const questions = new CheckoutQuestions();
  await expect(questions.once("one", () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(await questions.once("one", async () => true)).toBe(true);
});
