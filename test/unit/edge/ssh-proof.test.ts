/** A client's signature for a login is valid for exactly that login, whatever address another host reports for it. */
import { expect, test } from "vitest";
import { isLoginOf } from "../../../daemon/edge/ssh/forwarded/proof.ts";

const ALGORITHM = "ssh-ed25519";
const key = Buffer.from("a public key");
const field = (bytes: Buffer | string) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(bytes));
  return Buffer.concat([length, Buffer.from(bytes as string)]);
};

/** RFC 4252, section 7. */
function signed(changed: Partial<Record<"user" | "service" | "method" | "algorithm", string>> = {}, session = 32) {
  const { user = "worker@r", service = "ssh-connection", method = "publickey", algorithm = ALGORITHM } = changed;
  return Buffer.concat([
    field(Buffer.alloc(session, 7)),
    Buffer.of(50),
    ...[user, service, method].map(field),
    Buffer.of(1),
    ...[field(algorithm), field(key)],
  ]);
}
const isLogin = (blob: Buffer, user = "worker@r") =>
  isLoginOf(user, { algorithm: ALGORITHM, key, blob, signature: Buffer.alloc(64) });

test.each([20, 32, 48, 64])("a login over a connection whose id has %d bytes is valid", (bytes) => {
  expect(isLogin(signed({}, bytes))).toBe(true);
});

test.each([
  ["another user", signed({ user: "worker@other" })],
  ["a user with the same prefix", signed({ user: "worker@r2" })],
  ["another service", signed({ service: "ssh-userauth" })],
  ["another method", signed({ method: "hostbased" })],
  ["another algorithm", signed({ algorithm: "ssh-rsa" })],
  ["an invalid connection id", signed({}, 31)],
  ["something after it", Buffer.concat([signed(), Buffer.of(0)])],
  ["less than all of it", signed().subarray(0, -1)],
  ["another key", Buffer.concat([signed().subarray(0, -1), Buffer.of(0)])],
  ["a length beyond its end", Buffer.from([0xff, 0xff, 0xff, 0xff, 50])],
  ["nothing", Buffer.alloc(0)],
])("%s is rejected", (_, blob) => {
  expect(isLogin(blob)).toBe(false);
});
