/**
 * Adds mlkem768x25519-sha256 to a connection of ssh2 1.17, which has no API for a further key exchange: docs/decisions/0001.
 *
 *     offer      the list of exchanges that this side sends has it first
 *     KEXINIT    if both sides have it, ssh2 reads curve25519-sha256 in its place in the peer's list
 *     exchange   ssh2's object for it, with our messages and secret, and the peer's KEXINIT as sent
 *
 * All else stays ssh2's: the exchange hash, the host key's signature, strict exchange, keys and ciphers. Later key exchanges on the same
 * connection work the same way. ssh2-internals.ts verifies at startup that the internals of ssh2 used here exist.
 */
import type { Client, Connection } from "ssh2";
import { answerHybrid, HYBRID_KEX, type KemReply, type Offered, offerHybridKeys } from "./mlkem.ts";

/** The exchange with the class in ssh2 that the hybrid exchange uses: its hash is SHA-256 as well. */
const BORROWED = "curve25519-sha256";
const KEXINIT = 20;
/** Message number and cookie. */
const LISTS_AT = 17;

interface Lists {
  array: string[];
}
interface Offer {
  lists: { kex: Lists; serverHostKey: Lists; cs: Direction; sc: Direction };
}
type Direction = Record<"cipher" | "mac" | "compress" | "lang", Lists>;

interface Exchange {
  negotiated: { kex: string };
  _remoteKexinit: Buffer;
  convertPublicKey(key: Buffer): Buffer;
  getPublicKey(): Buffer;
  /** A returned error ends the connection with that reason. */
  computeSecret(other: Buffer): Buffer | Error;
}

interface Reader {
  read(payload: Buffer): Buffer;
  cleanup(): void;
}

interface InsideProtocol {
  _server: boolean;
  _offer: Offer;
  _kex: Exchange | undefined;
  _packetRW: { read: Reader };
}

/** Before either side has sent its KEXINIT: at `connection` of a server, after `connect` of a client. */
export function offerHybrid(connection: Connection | Client): void {
  const protocol = (connection as unknown as { _protocol: InsideProtocol })._protocol;
  protocol._offer = withHybrid(protocol._offer);
  /** The peer's KEXINIT as it was sent, from its arrival until ssh2 has made an exchange of it. */
  let received: Buffer | null = null;
  let exchange = protocol._kex;
  Object.defineProperty(protocol, "_kex", {
    configurable: true,
    get: () => exchange,
    set: (made: Exchange | undefined) => {
      exchange = made;
      if (made && received) takeOver(made, received, protocol._server);
      received = null;
    },
  });
  let reader = protocol._packetRW.read;
  const own: Reader = {
    read: (packet) => {
      const payload = reader.read(packet);
      // A server selects the client's first exchange that it supports; as a client, this side lists the hybrid exchange first.
      const preferred = protocol._server ? protocol._offer.lists.kex.array : [];
      const translated = payload[0] === KEXINIT ? translate(payload, preferred) : null;
      if (translated === null) return payload;
      received = payload;
      return translated;
    },
    cleanup: () => reader.cleanup(),
  };
  // ssh2 replaces the reader after each exchange.
  Object.defineProperty(protocol._packetRW, "read", {
    configurable: true,
    get: () => own,
    set: (next: Reader) => {
      reader = next;
    },
  });
}

function withHybrid(offer: Offer): Offer {
  const { lists } = offer;
  const of = ({ cipher, mac, compress, lang }: Direction) => ({
    cipher: cipher.array,
    mac: mac.array,
    compress: compress.array,
    lang: lang.array,
  });
  return Reflect.construct(offer.constructor, [
    {
      kex: [HYBRID_KEX, ...lists.kex.array],
      serverHostKey: lists.serverHostKey.array,
      cs: of(lists.cs),
      sc: of(lists.sc),
    },
  ]);
}

/** A KEXINIT with the borrowed exchange in the place of ours; null if the peer does not have ours, or has one of `preferred` before it. */
function translate(payload: Buffer, preferred: readonly string[]): Buffer | null {
  if (payload.byteLength < LISTS_AT + 4) return null;
  const begin = LISTS_AT + 4;
  const end = begin + payload.readUInt32BE(LISTS_AT);
  if (end > payload.byteLength) return null;
  const names = payload.toString("latin1", begin, end).split(",");
  const at = names.indexOf(HYBRID_KEX);
  if (at === -1) return null;
  if (names.slice(0, at).some((name) => preferred.includes(name))) return null;
  const list = Buffer.from(names.with(at, BORROWED).join(","), "latin1");
  const length = Buffer.alloc(4);
  length.writeUInt32BE(list.byteLength);
  return Buffer.concat([payload.subarray(0, LISTS_AT), length, list, payload.subarray(end)]);
}

function takeOver(exchange: Exchange, received: Buffer, isServer: boolean): void {
  const offered: Offered | null = isServer ? null : offerHybridKeys();
  let answered: KemReply | null = null;
  exchange.negotiated.kex = HYBRID_KEX;
  exchange._remoteKexinit = received;
  exchange.convertPublicKey = (key) => key;
  exchange.getPublicKey = () => {
    const message = offered?.message ?? answered?.reply;
    if (!message) throw new Error("ssh2 wants the reply before the secret");
    return message;
  };
  exchange.computeSecret = (other) => {
    try {
      if (offered) return offered.secretOf(other);
      answered = answerHybrid(other);
      return answered.secret;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  };
}
