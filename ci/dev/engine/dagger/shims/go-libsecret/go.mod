module github.com/jedevc/go-libsecret

go 1.25.0
