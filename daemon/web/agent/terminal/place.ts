/** Identity of a watched terminal. */
export interface TerminalPlace {
  room: string;
  agent: string;
  terminal: string;
  /** In the API. */
  path: string;
}
