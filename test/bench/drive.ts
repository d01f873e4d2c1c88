/**
 * Benchmark of the drive calls: small durable files, large streams, a long list. Yardstick: the same with plain system calls on the same
 * file system.
 */
import { randomBytes } from "node:crypto";
import type { TestDaemon } from "../harness/daemon.ts";
import { PlainFiles } from "./load/plain-files.ts";
import { inLanes, megabytesPerSecond, takeTurns } from "./load/sampling.ts";
import type { Bench, Report } from "./report.ts";

const USUAL_COUNT = 300;
const SMALL_BYTES = 4096;
const STREAM_BYTES = 64 * 1024 ** 2;
const STREAM_ROUNDS = 5;
const LIST_ENTRIES = 1000;
const LIST_ROUNDS = 50;
const LANES = 8;
const ROOM = "bench";
const DRIVE = `/v1/rooms/${ROOM}/drive`;

export async function benchDrive({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: false });
  await daemon.room(ROOM);
  await benchSmall(report, daemon, count);
  await benchStreams(report, daemon);
  await benchList(report, daemon);
}

async function benchSmall(report: Report, daemon: TestDaemon, count: number): Promise<void> {
  const plain = new PlainFiles(daemon.dataDir);
  const content = "x".repeat(SMALL_BYTES);
  const bytes = new TextEncoder().encode(content);
  const samples = await takeTurns(count, {
    write: (round) => daemon.ok("POST", `${DRIVE}/write`, { path: `/small/${round}`, content }),
    plain_write: async (round) => plain.write(String(round), bytes),
    read: async (round) => {
      const { length } = await daemon.ok("GET", `${DRIVE}/read?path=/small/${round}`);
      if (length !== SMALL_BYTES) throw new Error(`${length} bytes were read instead of ${SMALL_BYTES}`);
    },
    plain_read: async (round) => plain.read(String(round)),
  });
  report.add("write_4k", "ms", samples.write, "plain_write_4k", { of: "p50", most: 5 });
  report.add("plain_write_4k", "ms", samples.plain_write);
  report.add("read_4k", "ms", samples.read, "plain_read_4k");
  report.add("plain_read_4k", "ms", samples.plain_read);
}

async function benchStreams(report: Report, daemon: TestDaemon): Promise<void> {
  const plain = new PlainFiles(daemon.dataDir);
  const bytes = randomBytes(STREAM_BYTES);
  const url = `${daemon.url}${DRIVE}/files/large`;
  const headers = { authorization: `Bearer ${daemon.apiKey}` };
  const samples = await takeTurns(STREAM_ROUNDS, {
    put: async () => {
      const response = await fetch(url, { method: "PUT", headers, body: bytes });
      if (!response.ok) throw new Error(`PUT: ${response.status} ${await response.text()}`);
    },
    plain_write: async () => plain.writeStream("large", bytes),
    get: async () => {
      const response = await fetch(url, { headers });
      let received = 0;
      for await (const piece of response.body ?? []) received += piece.length;
      if (received !== STREAM_BYTES) throw new Error(`GET: ${response.status} with ${received} bytes`);
    },
    plain_read: async () => plain.readStream("large"),
  });
  report.add("put_64m", "MB/s", megabytesPerSecond(STREAM_BYTES, samples.put), "plain_write_64m");
  report.add("plain_write_64m", "MB/s", megabytesPerSecond(STREAM_BYTES, samples.plain_write));
  report.add("get_64m", "MB/s", megabytesPerSecond(STREAM_BYTES, samples.get), "plain_read_64m");
  report.add("plain_read_64m", "MB/s", megabytesPerSecond(STREAM_BYTES, samples.plain_read));
}

async function benchList(report: Report, daemon: TestDaemon): Promise<void> {
  const plain = new PlainFiles(daemon.dataDir);
  await inLanes(LANES, LIST_ENTRIES, async (index) => {
    plain.write(String(index), new Uint8Array());
    await daemon.ok("POST", `${DRIVE}/write`, { path: `/many/${index}`, content: "" });
  });
  const mustBeAll = (entries: number) => {
    if (entries !== LIST_ENTRIES) throw new Error(`${entries} entries were listed instead of ${LIST_ENTRIES}`);
  };
  const samples = await takeTurns(LIST_ROUNDS, {
    list: async () =>
      mustBeAll((await daemon.ok("GET", `${DRIVE}/list?path=/many&limit=${LIST_ENTRIES}`)).items.length),
    plain_list: async () => mustBeAll(plain.list()),
  });
  report.add("list_1000", "ms", samples.list, "plain_list_1000");
  report.add("plain_list_1000", "ms", samples.plain_list);
}
