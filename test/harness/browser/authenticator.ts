/** A software passkey: it creates and uses credentials in the form that browsers pass on, or as an attacker would. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import type { Json } from "../json.ts";

const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");
const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest();

const FLAGS = { present: 0x01, verified: 0x04, attested: 0x40 };

/** CBOR of a byte string of fewer than 65,536 bytes. */
function cborBytes(bytes: Uint8Array): Buffer {
  const head =
    bytes.length < 24
      ? [0x40 + bytes.length]
      : bytes.length < 256
        ? [0x58, bytes.length]
        : [0x59, bytes.length >> 8, bytes.length & 255];
  return Buffer.concat([Buffer.from(head), bytes]);
}
const cborText = (text: string) => Buffer.concat([Buffer.from([0x60 + text.length]), Buffer.from(text)]);

/** Deviations from a correct response. */
export interface Otherwise {
  origin?: string;
  rpId?: string;
  type?: string;
  challenge?: string;
  isVerified?: boolean;
  userHandle?: string;
  counter?: number;
  /** An unrequested attestation. */
  x5c?: boolean;
}

export class Passkey {
  readonly id = randomBytes(16);
  readonly #origin: string;
  readonly #key: { publicKey: KeyObject; privateKey: KeyObject } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  counter = 0;
  userHandle = "";

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** As `navigator.credentials.create` answers. */
  make(options: Json, otherwise: Otherwise = {}): Json {
    this.userHandle = options.user.id;
    const { x = "", y = "" } = this.#key.publicKey.export({ format: "jwk" });
    const cose = Buffer.concat([
      Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21]),
      cborBytes(Buffer.from(x, "base64url")),
      Buffer.from([0x22]),
      cborBytes(Buffer.from(y, "base64url")),
    ]);
    const length = Buffer.from([0, this.id.length]);
    const attested = Buffer.concat([Buffer.alloc(16), length, this.id, cose]);
    const data = Buffer.concat([this.#data(otherwise.rpId ?? options.rp.id, otherwise, FLAGS.attested), attested]);
    const statement = otherwise.x5c
      ? Buffer.concat([
          Buffer.from([0xa3]),
          cborText("alg"),
          Buffer.from([0x26]),
          cborText("sig"),
          cborBytes(Buffer.alloc(8)),
          cborText("x5c"),
          Buffer.from([0x81]),
          cborBytes(Buffer.alloc(32)),
        ])
      : Buffer.from([0xa0]);
    const attestationObject = Buffer.concat([
      Buffer.from([0xa3]),
      cborText("fmt"),
      cborText(otherwise.x5c ? "packed" : "none"),
      cborText("attStmt"),
      statement,
      cborText("authData"),
      cborBytes(data),
    ]);
    const clientDataJSON = base64url(this.#client("webauthn.create", options, otherwise));
    return this.#answer({ clientDataJSON, attestationObject: base64url(attestationObject), transports: ["internal"] });
  }

  /** As `navigator.credentials.get` answers. */
  use(options: Json, otherwise: Otherwise = {}): Json {
    const data = this.#data(otherwise.rpId ?? options.rpId, otherwise);
    const client = this.#client("webauthn.get", options, otherwise);
    const signature = sign("sha256", Buffer.concat([data, sha256(client)]), this.#key.privateKey);
    return this.#answer({
      clientDataJSON: base64url(client),
      authenticatorData: base64url(data),
      signature: base64url(signature),
      userHandle: otherwise.userHandle ?? this.userHandle,
    });
  }

  #answer(response: Json): Json {
    const id = base64url(this.id);
    return {
      id,
      rawId: id,
      type: "public-key",
      clientExtensionResults: {},
      authenticatorAttachment: "platform",
      response,
    };
  }

  #data(rpId: string, { isVerified = true, counter = this.counter }: Otherwise, more = 0): Buffer {
    const head = Buffer.alloc(5);
    head[0] = FLAGS.present | (isVerified ? FLAGS.verified : 0) | more;
    head.writeUInt32BE(counter, 1);
    return Buffer.concat([sha256(rpId), head]);
  }

  #client(type: string, { challenge }: Json, otherwise: Otherwise): Buffer {
    return Buffer.from(
      JSON.stringify({
        type: otherwise.type ?? type,
        challenge: otherwise.challenge ?? challenge,
        origin: otherwise.origin ?? this.#origin,
        crossOrigin: false,
      }),
    );
  }
}
