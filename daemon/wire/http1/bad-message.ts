/** A peer has sent data that is not HTTP/1, or that two receivers could read differently, or less than it announced. */
export class BadMessage extends Error {
  override name = "BadMessage";
}
