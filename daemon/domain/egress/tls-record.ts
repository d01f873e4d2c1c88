/**
 * Decides whether a connection that begins with a content type of TLS can be TLS to any server. Binary protocols with messages that begin
 * with their length begin alike: 278 bytes of MySQL or MongoDB are 16 01 00.
 *
 * The version of the first record is no proof: OpenSSL, GnuTLS, BoringSSL and rustls require major version 3, Go's crypto/tls accepts any
 * below 0x1000, and RFC 8446, 5.1 has it ignored. The content is checked: a server sends nothing before a ClientHello. Go's crypto/tls
 * skips a warning alert before it (readRecordOrCCS), so an alert must be checked too.
 */

const ALERT = 21;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const ALERT_BYTES = 2;
const MAJOR_VERSION = 3;
/** The header, and the first byte of the content. */
const DECIDING_BYTES = 6;

/** "hello": its server name must be read. "refused": TLS that begins with another message. A number: bytes needed to decide. */
export function beginsTls(bytes: Buffer): "hello" | "refused" | "raw" | number {
  const [type, major] = bytes;
  if (bytes.byteLength < 2) return 2;
  if (major === MAJOR_VERSION) return type === HANDSHAKE ? "hello" : "refused";
  if (type !== HANDSHAKE && type !== ALERT) return "raw";
  if (bytes.byteLength < DECIDING_BYTES) return DECIDING_BYTES;
  const length = bytes.readUInt16BE(3);
  const first = bytes[DECIDING_BYTES - 1] ?? 0;
  if (type === ALERT) return length === ALERT_BYTES && (first === 1 || first === 2) ? "refused" : "raw";
  return length > 0 && first !== CLIENT_HELLO ? "raw" : "hello";
}
