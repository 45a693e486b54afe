package io.headwater.capture;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;

/** Writes a recording, one file a writer, which gets its name only when it is whole. */
final class RecordingSink implements MessageSink {
  private final Path path;
  private final Path unfinished;
  private OutputStream out;

  RecordingSink(SinkConfig config, String attempt) {
    path = Path.of(config.folder, config.topic, attempt + ".jsonl");
    unfinished = path.resolveSibling("." + path.getFileName() + "." + System.nanoTime());
  }

  @Override
  public void send(Map<String, byte[]> headers, byte[] value) {
    try {
      if (out == null) {
        Files.createDirectories(path.getParent());
        out = new BufferedOutputStream(Files.newOutputStream(unfinished), 1 << 20);
      }
      StringBuilder line = new StringBuilder("{\"headers\":{");
      // Headers are ids of ours and of the engine: none of their characters needs an escape in JSON.
      headers.forEach(
          (name, bytes) ->
              line.append('"').append(name).append("\":\"")
                  .append(new String(bytes, StandardCharsets.UTF_8)).append("\","));
      line.setLength(line.length() - 1);
      out.write(line.append("},\"value\":").toString().getBytes(StandardCharsets.UTF_8));
      out.write(value);
      out.write('}');
      out.write('\n');
    } catch (IOException error) {
      throw new UncheckedIOException("A recording cannot be written: " + path, error);
    }
  }

  @Override
  public void close() {
    if (out == null) {
      return;
    }
    try {
      out.close();
      Files.move(unfinished, path, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException error) {
      throw new UncheckedIOException("A recording cannot be written: " + path, error);
    }
  }

  @Override
  public void abort() {
    if (out == null) {
      return;
    }
    try {
      out.close();
      Files.deleteIfExists(unfinished);
    } catch (IOException error) {
      throw new UncheckedIOException("A recording cannot be removed: " + unfinished, error);
    }
  }
}
