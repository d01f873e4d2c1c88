/** Owns what names a terminal that is looked at. */
export interface TerminalPlace {
  room: string;
  agent: string;
  terminal: string;
  /** In the API. */
  path: string;
}
