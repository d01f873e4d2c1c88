/** Answers of the guest's resolver, as bytes: read by a reader of the test's own. */
import { expect, test } from "vitest";
import { readQuestion, writeRecords } from "../../../guest-agent/egress/dns-message.ts";

const NAME = [1, 97, 7, ...Buffer.from("example"), 0];
const query = (type: number, more: number[] = []) =>
  Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, more.length > 0 ? 1 : 0, ...NAME, 0, type, 0, 1, ...more]);
const HEAD = [0xc0, 12, 0];
const tail = (data: number[]) => [0, 1, 0, 0, 0, 60, 0, data.length, ...data];

function answered(type: number, records: Parameters<typeof writeRecords>[1], most = 512): Buffer {
  const question = readQuestion(query(type));
  if (!question) throw new Error("the query is none");
  return Buffer.from(writeRecords(question, records, most));
}

test.each<[string, number, Parameters<typeof writeRecords>[1][number], number[]]>([
  [
    "SRV",
    33,
    { type: "SRV", priority: 1, weight: 2, port: 27_017, target: "a.example" },
    [0, 1, 0, 2, 0x69, 0x89, ...NAME],
  ],
  ["MX", 15, { type: "MX", preference: 10, target: "a.example" }, [0, 10, ...NAME]],
  ["TXT", 16, { type: "TXT", texts: ["v=1", ""] }, [3, ...Buffer.from("v=1"), 0]],
])("%s", (_, type, record, data) => {
  const question = [...NAME, 0, type, 0, 1];
  const expected = [0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0, ...question, ...HEAD, type, ...tail(data)];
  expect([...answered(type, [record])]).toEqual(expected);
});

test("a message too large for a datagram is truncated, so that the client retries by TCP", () => {
  const texts = Array.from({ length: 40 }, () => ({ type: "TXT" as const, texts: ["x".repeat(50)] }));
  const short = answered(16, texts);
  expect([short.readUInt16BE(2) & 0x0200, short.readUInt16BE(6), short.byteLength]).toEqual([
    0x0200,
    0,
    12 + NAME.length + 4,
  ]);
  expect(answered(16, texts, 65_535).readUInt16BE(6)).toBe(40);
});

test("a client declares its datagram size by EDNS", () => {
  const opt = (size: number) => [0, 0, 41, size >> 8, size & 255, 0, 0, 0, 0, 0, 0];
  expect(
    [query(16), query(16, opt(1232)), query(16, opt(100)), query(16, opt(65_535))].map(
      (each) => readQuestion(each)?.udpBytes,
    ),
  ).toEqual([512, 1232, 512, 4096]);
});
