/**
 * Proof of identity that another host must forward for a login: the client's password, or a signature by the client's own key for this very
 * user name. So no host admits a user because another host vouches for them.
 */
import type { SignedLogin } from "../session-context.ts";

/** RFC 4252, section 7: the signed data starts with the ID of the connection and this number. */
const USERAUTH_REQUEST = 50;
const SESSION_ID_BYTES = [20, 32, 48, 64];

/** Whether the signed data is a login of this user by this key, and nothing else. */
export function isLoginOf(user: string, { algorithm, key, blob }: SignedLogin): boolean {
  const [session, rest] = stringOf(blob);
  if (session === null || rest[0] !== USERAUTH_REQUEST || !SESSION_ID_BYTES.includes(session.byteLength)) return false;
  const signedData = Buffer.concat([
    Buffer.of(USERAUTH_REQUEST),
    asString(Buffer.from(user)),
    asString(Buffer.from("ssh-connection")),
    asString(Buffer.from("publickey")),
    Buffer.of(1),
    asString(Buffer.from(algorithm)),
    asString(key),
  ]);
  return signedData.equals(rest);
}

function stringOf(bytes: Buffer): [string: Buffer | null, rest: Buffer] {
  if (bytes.byteLength < 4) return [null, bytes];
  const end = 4 + bytes.readUInt32BE(0);
  return end > bytes.byteLength ? [null, bytes] : [bytes.subarray(4, end), bytes.subarray(end)];
}

function asString(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.byteLength);
  return Buffer.concat([length, bytes]);
}
