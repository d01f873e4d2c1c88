/** Selection among several servers. */
import { expect, test } from "vitest";
import { type Address, readAddresses } from "../../../daemon/cluster/address.ts";
import { type Open, Servers } from "../../../daemon/cluster/servers.ts";
import type { Session } from "../../../daemon/cluster/session.ts";
import { DirectoryUnavailable } from "../../../daemon/cluster/unavailable.ts";

const STANDBY = new DirectoryUnavailable("read_only", "the server is a standby");
const GONE = new DirectoryUnavailable("unreachable", "nobody is there");

/** Servers by name: the behaviour of each when it is tried, and the order in which they were tried and discarded. */
class Trial {
  does: Record<string, Promise<void>> = {};
  readonly asked: string[] = [];
  readonly discarded: string[] = [];
  readonly servers = new Servers(readAddresses("postgres://u@a,b,c/d"));

  readonly open: Open = async ({ host }: Address, late) => {
    this.asked.push(host);
    late.addEventListener("abort", () => this.discarded.push(`${host} late`));
    await this.does[host];
    return { host, discard: () => this.discarded.push(host) } as unknown as Session;
  };

  async find(): Promise<string> {
    return ((await this.servers.find(this.open)) as unknown as { host: string }).host;
  }
}

const never = () => Promise.withResolvers<never>().promise;
const fails = (error: Error) => {
  const failed = Promise.reject(error);
  failed.catch(() => {});
  return failed;
};

test("finds the primary, and queries only that server from then on", async () => {
  const trial = new Trial();
  trial.does = { a: fails(STANDBY), b: Promise.resolve(), c: fails(GONE) };
  expect(await trial.find()).toBe("b");
  expect(trial.asked).toEqual(["a", "b", "c"]);
  trial.asked.length = 0;
  expect(await trial.find()).toBe("b");
  expect(trial.asked).toEqual(["b"]);
});

test("finds another server if the primary is demoted or silent", async () => {
  const trial = new Trial();
  trial.does = { a: Promise.resolve(), b: never(), c: never() };
  expect(await trial.find()).toBe("a");
  trial.does = { a: fails(STANDBY), b: Promise.resolve(), c: never() };
  expect(await trial.find()).toBe("b");
  trial.does = { a: never(), b: never(), c: Promise.resolve() };
  expect(await trial.find()).toBe("c");
  expect(trial.discarded).toContain("b late");
});

test("of two servers found simultaneously, takes one and closes the other", async () => {
  const trial = new Trial();
  const both = Promise.withResolvers<void>();
  trial.does = { a: both.promise, b: both.promise, c: never() };
  const found = trial.find();
  both.resolve();
  expect(await found).toBe("a");
  expect(trial.discarded).toContain("b");
  expect(trial.discarded).not.toContain("a");
});

test("gives a doubted server no head start", async () => {
  const trial = new Trial();
  trial.does = { a: Promise.resolve(), b: never(), c: never() };
  expect(await trial.find()).toBe("a");
  trial.asked.length = 0;
  trial.servers.doubt();
  expect(await trial.find()).toBe("a");
  expect(trial.asked).toEqual(["a", "b", "c"]);
});

test("without a primary, reports the reason, and blames no standby", async () => {
  const trial = new Trial();
  trial.does = { a: fails(STANDBY), b: fails(GONE), c: fails(STANDBY) };
  const error = await trial.find().catch((cause: unknown) => cause);
  expect(error).toMatchObject({ reason: "unreachable", message: "the server is a standby; nobody is there" });
  trial.does = { a: fails(STANDBY), b: fails(STANDBY), c: fails(STANDBY) };
  expect(await trial.find().catch((cause: unknown) => cause)).toMatchObject({ reason: "read_only" });
});
