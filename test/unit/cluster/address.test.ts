/** The meaning of `cluster.url`, and its invalid forms. */
import { expect, test } from "vitest";
import { type Address, readAddresses } from "../../../daemon/cluster/address.ts";

const readAddress = (text: string) => readAddresses(text)[0] as Address;

test("a remote server must prove its name, a local one need not", () => {
  expect(readAddress("postgres://roomd:p%40ss@db.example.com/rooms")).toEqual({
    host: "db.example.com",
    port: 5432,
    user: "roomd",
    password: "p@ss",
    database: "rooms",
    tls: { proven: true, authority: null },
  });
  expect(readAddress("postgresql://roomd@127.0.0.1:5433")).toMatchObject({ port: 5433, database: "roomd", tls: null });
  expect(readAddress("postgres://roomd@[2001:db8::1]/r").host).toBe("2001:db8::1");
  expect(readAddress("postgres://roomd@db/r?sslmode=require").tls).toEqual({ proven: false, authority: null });
});

test("a directory as host means a UNIX socket", () => {
  const { host, tls } = readAddress("postgres://roomd@localhost/rooms?host=/run/postgresql");
  expect([host, tls]).toEqual(["/run/postgresql", null]);
});

test.each(["", "db.example.com", "mysql://a@b/c", "postgres://db/rooms", "postgres:///rooms"])(
  "%o is not a valid address",
  (text) => {
    expect(() => readAddress(text)).toThrow();
  },
);

test("options that would be ignored are rejected", () => {
  expect(() => readAddress("postgres://a@b/c?sslmode=prefer")).toThrow(/sslmode/);
  expect(() => readAddress("postgres://a@b/c?target_session_attrs=any")).toThrow(/target_session_attrs/);
  expect(() => readAddress("postgres://a@b/c?connect_timeout=1")).toThrow(/connect_timeout/);
});

test("several servers are listed in their order, each with its own port", () => {
  const all = readAddresses("postgres://a:p%2C@db-1:5433,[2001:db8::1],127.0.0.1:6432/c?target_session_attrs=primary");
  expect(all.map(({ host, port, password, database }) => [host, port, password, database])).toEqual([
    ["db-1", 5433, "p,", "c"],
    ["2001:db8::1", 5432, "p,", "c"],
    ["127.0.0.1", 6432, "p,", "c"],
  ]);
  expect(all.map(({ tls }) => tls?.proven ?? null)).toEqual([true, true, null]);
  expect(readAddresses("postgres://a@b,c/d?target_session_attrs=read-write")).toHaveLength(2);
});

test.each([
  "postgres://a@b,/c",
  "postgres://a@b,c:x/d",
  "postgres://a@b,c/d?host=/run",
  `postgres://a@${"b,".repeat(8)}b/c`,
])("%o is not a valid list of servers", (text) => {
  expect(() => readAddresses(text)).toThrow();
});
