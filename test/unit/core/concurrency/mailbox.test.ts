/** The mailbox of a task: entries run one after another, and `busy` tells whether any is left. */
import { expect, test } from "vitest";
import { Mailbox } from "../../../../daemon/core/concurrency/mailbox.ts";

test("runs entries one after another, in order, also after a failure, and is busy until the last", async () => {
  const mailbox = new Mailbox();
  const log: string[] = [];
  const first = Promise.withResolvers<void>();
  expect(mailbox.busy).toBe(false);
  const works = [
    mailbox.put(async () => {
      await first.promise;
      log.push("first");
    }),
    mailbox.put(() => Promise.reject(new Error("broken"))),
    mailbox.put(async () => log.push("third")),
  ];
  expect(mailbox.busy).toBe(true);
  first.resolve();
  expect((await Promise.allSettled(works)).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect([log, mailbox.busy]).toEqual([["first", "third"], false]);
});
